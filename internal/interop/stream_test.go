//go:build linux

package interop

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
)

const mib = 1 << 20

// stream returns n bytes, fewer in a short test, that no permutation or loss leaves the same.
func stream(n int, seed uint64) []byte {
	if testing.Short() {
		n = min(n, 4*mib)
	}
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	r.Read(b)
	return b
}

func digest(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:8])
}

// exchange sends up from the kernel to us and down the other way at the same time, each with a half close behind, and compares.
func exchange(t testing.TB, p pair, up, down []byte) {
	t.Helper()
	results := make(chan error, 4)
	send := func(who string, c duplex, data []byte) {
		_, err := c.Write(data)
		if err == nil {
			err = c.CloseWrite()
		}
		if err != nil {
			err = fmt.Errorf("%s sends: %w", who, err)
		}
		results <- err
	}
	receive := func(who string, c duplex, want []byte) {
		got, err := readAll(c, len(want))
		switch {
		case err != nil:
			err = fmt.Errorf("%s received %d of %d bytes: %w", who, len(got), len(want), err)
		case digest(got) != digest(want):
			err = fmt.Errorf("%s received %d bytes, want %d: %s", who, len(got), len(want), difference(got, want))
		}
		results <- err
	}
	go send("braid", p.own, down)
	go send("the kernel", p.kernel, up)
	go receive("braid", p.own, up)
	go receive("the kernel", p.kernel, down)
	for range 4 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

// difference says where what came first differs from what was sent, for how long, and whose place the wrong bytes have: what to know of a mapping
// that was misread.
func difference(got, want []byte) string {
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	end := at
	for end < min(len(got), len(want)) && got[end] != want[end] {
		end++
	}
	return fmt.Sprintf("from byte %d on for about %d bytes, there is what belongs at %d", at, end-at, bytes.Index(want, got[at:min(at+16, len(got))]))
}

// readAll reads to the end of the stream, which should have n bytes.
func readAll(r io.Reader, n int) ([]byte, error) {
	b := make([]byte, 0, n+1)
	for {
		m, err := r.Read(b[len(b):min(cap(b), len(b)+256<<10)])
		b = b[:len(b)+m]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return b, err
		}
		b = slices.Grow(b, 1)
	}
}
