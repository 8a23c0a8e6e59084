package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"braid"
	"braid/internal/transfer"
)

// recvCmd is braid recv.
type recvCmd struct {
	Listen  string `short:"l" default:":9000" placeholder:"[HOST]:PORT" help:"Where to listen; an empty host is every address."`
	Dir     string `short:"d" default:"." type:"existingdir" help:"Folder for the files."`
	Once    bool   `help:"Exit after one file; the exit code says whether it arrived whole."`
	Replace bool   `help:"Overwrite files of the same name."`
	JSON    bool   `name:"json" help:"Print each result as a line of JSON and no progress."`
	pathFlags
	stackFlags
	wireFlags
}

// Help is the long help.
func (*recvCmd) Help() string {
	return `Examples:
  braid recv --listen :9000 --dir inbox
  braid recv --via raw --path eth0    past the kernel's TCP, at eth0's own addresses (Linux, root)

A file is kept as NAME.part until it is whole and its SHA-256 agrees with the sender's; an interrupted one is resumed when it is sent again.`
}

// Run receives until it is interrupted, or one file with --once.
func (c *recvCmd) Run(ctx context.Context) error {
	if err := errors.Join(c.stackFlags.check(), c.wireFlags.check()); err != nil {
		return err
	}
	cfg := config(c.stackFlags, c.pathFlags, c.wireFlags)
	defer monitored(cfg)()
	l, err := cfg.Listen(ctx, c.Listen)
	if err != nil {
		return err
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	fmt.Fprintf(os.Stderr, "braid recv: listening on %s, storing in %s\n", l.Addr(), c.Dir)
	var running sync.WaitGroup
	defer running.Wait()
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		if c.Once {
			return c.take(ctx, conn.(*braid.Conn))
		}
		running.Go(func() {
			if err := c.take(ctx, conn.(*braid.Conn)); err != nil {
				fmt.Fprintf(os.Stderr, "braid recv: from %s: %v\n", conn.RemoteAddr(), err)
			}
		})
	}
}

// take receives one file and waits until the sender has heard the verdict.
func (c *recvCmd) take(ctx context.Context, conn *braid.Conn) error {
	defer conn.Close()
	defer context.AfterFunc(ctx, conn.Abort)()
	show := newProgress(conn, c.JSON, receivedBytes)
	rc := transfer.Receiver{Dir: c.Dir, Replace: c.Replace, Progress: show.update,
		Offered: func(name string, size, resumed int64) { show.begin(name, size, resumed) }}
	began := time.Now()
	res, err := rc.Receive(conn)
	show.stop(err)
	if err != nil {
		return err
	}
	info := conn.Info()
	closing, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := conn.Shutdown(closing); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return report(c.JSON, "received", res, time.Since(began), info)
}
