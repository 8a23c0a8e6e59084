//go:build !unix

package braid

import (
	"io/fs"
	"os/user"
	"path/filepath"
)

// userName tells users apart.
func userName() string {
	if u, err := user.Current(); err == nil {
		return filepath.Base(u.Uid)
	}
	return "user"
}

// onlyOurs checks nothing: these systems keep each user's temporary files in a folder of his own.
func onlyOurs(string, fs.FileInfo) error { return nil }
