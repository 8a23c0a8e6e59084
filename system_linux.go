package braid

import (
	"os"
	"path/filepath"
	"strings"
)

// isVirtual reports whether an interface is no piece of hardware: its place in sysfs says so.
func isVirtual(name string) bool {
	target, err := os.Readlink(filepath.Join("/sys/class/net", name))
	return err == nil && strings.Contains(target, "/virtual/")
}
