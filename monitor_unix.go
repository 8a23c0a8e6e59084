//go:build unix

package braid

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// userName tells users apart.
func userName() string { return strconv.Itoa(os.Getuid()) }

// onlyOurs checks that a folder belongs to this user and is closed to others: in a folder for temporary files anybody could have made it.
func onlyOurs(dir string, st fs.FileInfo) error {
	if own, ok := st.Sys().(*syscall.Stat_t); ok && int(own.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d: set XDG_RUNTIME_DIR to a folder of your own", dir, own.Uid)
	}
	if mode := st.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s is open to others (mode %o): chmod 700 it", dir, mode)
	}
	return nil
}
