package braid

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

func TestParseTUN(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"braid0=10.9.0.2", "braid0 [10.9.0.2]"},
		{"braid0=10.9.0.2,fd09::2", "braid0 [10.9.0.2 fd09::2]"},
		{"braid0=::ffff:10.9.0.2", "braid0 [10.9.0.2]"},
		{"braid0", "want NAME=ADDRESS"},
		{"=10.9.0.2", "want NAME=ADDRESS"},
		{"braid0=", "want NAME=ADDRESS"},
		{"braid0=somewhere", "unable to parse"},
		{"braid0=10.9.0.2/24", "unexpected character"},
		{"braid0=0.0.0.0", "cannot be an address"},
		{"braid0=ff02::1", "cannot be an address"},
		{"braid0=fe80::2%eth0", "cannot be an address"},
		{"braid0=10.9.0.2,10.9.0.2", "cannot be an address"},
	} {
		name, own, err := ParseTUN(tc.text)
		got := fmt.Sprint(name, " ", own)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, tc.want) {
			t.Errorf("%s: %s, want %s", tc.text, got, tc.want)
		}
	}
}

// TestTUNErrors: what is wrong with a TUN configuration is said before anything is sent.
func TestTUNErrors(t *testing.T) {
	for _, tun := range []string{"braid0", "a-name-that-is-much-too-long=10.9.0.2"} {
		c := Config{TUN: []string{tun}}
		if conn, err := c.Dial(context.Background(), "192.0.2.1:80"); err == nil {
			conn.Close()
			t.Errorf("%s: dialled", tun)
		}
		if l, err := c.Listen(context.Background(), ":80"); err == nil {
			l.Close()
			t.Errorf("%s: listened", tun)
		}
	}
}
