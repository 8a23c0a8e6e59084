package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"braid/internal/transfer"
)

// sendCmd is braid send.
type sendCmd struct {
	File    string        `arg:"" type:"existingfile" help:"File to send."`
	To      string        `arg:"" name:"host:port" help:"Where a braid recv listens."`
	Timeout time.Duration `default:"30s" help:"How long to try to connect."`
	JSON    bool          `name:"json" help:"Print the result as JSON and no progress."`
	pathFlags
	stackFlags
	wireFlags
}

// Help is the long help.
func (*sendCmd) Help() string {
	return `Example: braid send holiday.tar server.example:9000 --path wlan0 --path wwan0

The file travels over all paths at once. SHA-256 is computed at both ends and compared. If the transfer is interrupted, run the same command again: it goes on where it stopped.`
}

// Run sends the file.
func (c *sendCmd) Run(ctx context.Context) error {
	if err := errors.Join(c.stackFlags.check(), c.wireFlags.check()); err != nil {
		return err
	}
	dialing, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	cfg := config(c.stackFlags, c.pathFlags, c.wireFlags)
	defer monitored(cfg)()
	conn, err := cfg.Dial(dialing, c.To)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, conn.Abort)()
	show := newProgress(conn, c.JSON, sentBytes)
	if st, err := os.Stat(c.File); err == nil {
		show.begin(filepath.Base(c.File), st.Size(), 0)
	}
	began := time.Now()
	res, err := transfer.Send(conn, c.File, show.update)
	show.stop(err)
	if ctx.Err() != nil {
		return fmt.Errorf("run the same command again to resume: %w", context.Cause(ctx))
	}
	if err != nil {
		return err
	}
	took, info := time.Since(began), conn.Info()
	closing, cancelClosing := context.WithTimeout(ctx, 2*time.Second)
	defer cancelClosing()
	conn.Shutdown(closing) // the verdict is here: what remains is courtesy
	return report(c.JSON, "sent", res, took, info)
}
