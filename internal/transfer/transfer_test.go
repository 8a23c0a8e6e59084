package transfer

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pair returns the two ends of a loopback TCP connection.
func pair(t *testing.T) (net.Conn, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// source writes a file of n reproducible bytes and returns its path and content.
func source(t *testing.T, n int) (string, []byte) {
	t.Helper()
	data := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(data)
	path := filepath.Join(t.TempDir(), "picture.raw")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path, data
}

type outcome struct {
	res Result
	err error
}

// run moves the file at path into dir and returns both ends' outcomes. limit >= 0 breaks the stream after that many bytes of the file.
func run(t *testing.T, path, dir string, rc Receiver, limit int64) (sent, got outcome) {
	t.Helper()
	a, b := pair(t)
	done := make(chan outcome)
	go func() {
		rc.Dir = dir
		res, err := rc.Receive(b)
		b.Close()
		done <- outcome{res, err}
	}()
	sent.res, sent.err = Send(a, path, func(n int64) {
		if limit >= 0 && n >= limit {
			a.Close()
		}
	})
	a.Close()
	return sent, <-done
}

func TestWholeFile(t *testing.T) {
	for _, size := range []int{0, 1, chunk, 3*chunk + 17} {
		path, data := source(t, size)
		dir := t.TempDir()
		sent, got := run(t, path, dir, Receiver{}, -1)
		if sent.err != nil || got.err != nil {
			t.Fatalf("size %d: %v, %v", size, sent.err, got.err)
		}
		have, err := os.ReadFile(filepath.Join(dir, "picture.raw"))
		if err != nil || !bytes.Equal(have, data) {
			t.Fatalf("size %d: file differs (%v)", size, err)
		}
		if sent.res != got.res || sent.res.Size != int64(size) {
			t.Errorf("ends disagree: %+v, %+v", sent.res, got.res)
		}
	}
}

func TestResume(t *testing.T) {
	path, data := source(t, 8*chunk)
	dir := t.TempDir()
	if sent, got := run(t, path, dir, Receiver{}, 3*chunk); sent.err == nil || got.err == nil {
		t.Fatalf("a broken stream went unnoticed: %v, %v", sent.err, got.err)
	} else if !errors.Is(got.err, io.ErrUnexpectedEOF) {
		t.Errorf("receiver: %v, want unexpected EOF", got.err)
	}
	part, err := os.Stat(filepath.Join(dir, "picture.raw.part"))
	if err != nil || part.Size() == 0 {
		t.Fatalf("no part was kept: %v", err)
	}
	sent, got := run(t, path, dir, Receiver{}, -1)
	if sent.err != nil || got.err != nil {
		t.Fatalf("%v, %v", sent.err, got.err)
	}
	if got.res.Resumed != part.Size() {
		t.Errorf("resumed %d bytes, want the %d that were kept", got.res.Resumed, part.Size())
	}
	if have, _ := os.ReadFile(filepath.Join(dir, "picture.raw")); !bytes.Equal(have, data) {
		t.Error("the resumed file differs")
	}
}

func TestPartOfAnotherFileIsNotKept(t *testing.T) {
	path, data := source(t, 2*chunk)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "picture.raw.part"), []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	sent, got := run(t, path, dir, Receiver{}, -1)
	if sent.err != nil || got.err != nil || got.res.Resumed != 0 {
		t.Fatalf("%+v, %+v", sent, got)
	}
	if have, _ := os.ReadFile(filepath.Join(dir, "picture.raw")); !bytes.Equal(have, data) {
		t.Error("the file differs")
	}
}

func TestExistingFileIsRefused(t *testing.T) {
	path, data := source(t, 100)
	dir := t.TempDir()
	old := filepath.Join(dir, "picture.raw")
	if err := os.WriteFile(old, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	sent, _ := run(t, path, dir, Receiver{}, -1)
	if !errors.Is(sent.err, ErrRemote) || !strings.Contains(sent.err.Error(), "--replace") {
		t.Errorf("sender was told %v", sent.err)
	}
	if have, _ := os.ReadFile(old); string(have) != "precious" {
		t.Error("the file was overwritten")
	}
	if sent, got := run(t, path, dir, Receiver{Replace: true}, -1); sent.err != nil || got.err != nil {
		t.Errorf("%v, %v", sent.err, got.err)
	}
	if have, _ := os.ReadFile(old); !bytes.Equal(have, data) {
		t.Error("the file was not replaced")
	}
}

func TestNamesThatLeaveTheFolderAreRefused(t *testing.T) {
	for _, name := range []string{"", ".", "..", "../x", "a/b", `a\b`, "a\x00b"} {
		rc := Receiver{Dir: t.TempDir()}
		if _, err := rc.place(offer{Name: name}); err == nil {
			t.Errorf("%q was accepted", name)
		}
	}
}

func TestNotOurProtocol(t *testing.T) {
	a, b := pair(t)
	go func() {
		io.WriteString(a, "GET / HTTP/1.1\r\n\r\n")
		a.Close()
	}()
	rc := Receiver{Dir: t.TempDir()}
	if _, err := rc.Receive(b); !errors.Is(err, ErrProtocol) {
		t.Errorf("got %v, want %v", err, ErrProtocol)
	}
}

// full is a disk that takes n bytes.
type full struct{ n int }

func (f *full) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(p), nil
}

func TestSenderLearnsOfAFullDisk(t *testing.T) {
	path, _ := source(t, 64*chunk)
	a, b := pair(t)
	go func() {
		var o offer
		readMessage(b, &o)
		writeMessage(b, answer{})
		readMessage(b, &start{})
		rc := Receiver{}
		rc.copyBytes(b, &full{2 * chunk}, discardHash{}, 0, o.Size)
		io.Copy(io.Discard, b)
	}()
	_, err := Send(a, path, nil)
	if !errors.Is(err, ErrRemote) || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("got %v", err)
	}
}

type discardHash struct{}

func (discardHash) Write(p []byte) (int, error) { return len(p), nil }
func (discardHash) Sum(b []byte) []byte         { return b }
func (discardHash) Reset()                      {}
func (discardHash) Size() int                   { return 0 }
func (discardHash) BlockSize() int              { return 1 }
