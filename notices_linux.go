package braid

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// subscribe calls changed, on a goroutine of its own, whenever the kernel says that an interface or an address has come, gone or changed
// (rtnetlink(7)), until stop is called. What has changed is not read from the messages: some may be lost when there are too many, and then this
// is all that the kernel tells. It reports whether the kernel can be asked.
func subscribe(changed func()) (stop func(), ok bool) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, false
	}
	groups := &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR}
	if err := unix.Bind(fd, groups); err != nil {
		unix.Close(fd)
		return nil, false
	}
	f := os.NewFile(uintptr(fd), "netlink") // under the runtime's poller
	go func() {
		buf := make([]byte, 1<<16)
		for {
			_, err := f.Read(buf)
			if err != nil && !errors.Is(err, unix.ENOBUFS) { // ENOBUFS: some were lost
				return
			}
			changed()
		}
	}()
	return func() { f.Close() }, true
}
