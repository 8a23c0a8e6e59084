package transfer

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// chunk is how much is read, hashed and written at a time.
const chunk = 256 << 10

// Send offers the file at path to the receiver at the other end of conn and sends what it lacks. progress, if not nil, is called
// after each piece with the bytes of the file that are sent, resumed ones included. It does not close conn.
func Send(conn net.Conn, path string, progress func(done int64)) (Result, error) {
	f, err := os.Open(path)
	if err != nil {
		return Result{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Result{}, err
	}
	if !info.Mode().IsRegular() {
		return Result{}, &fs.PathError{Op: "send", Path: path, Err: errors.New("not a regular file")}
	}
	o := offer{magic, filepath.Base(path), info.Size(), uint32(info.Mode().Perm())}
	if err := writeMessage(conn, o); err != nil {
		return Result{}, err
	}
	var a answer
	if err := readMessage(conn, &a); err != nil {
		return Result{}, err
	}
	if a.Error != "" {
		return Result{}, fmt.Errorf("%w: %s", ErrRemote, a.Error)
	}
	h := sha256.New()
	offset, err := resumeAt(f, a, o.Size, h)
	if err != nil {
		return Result{}, err
	}
	if err := writeMessage(conn, start{offset}); err != nil {
		return Result{}, err
	}
	return sendBytes(conn, f, o, offset, h, progress)
}

// resumeAt hashes the bytes that the receiver says it has and returns its offset if they are the file's, else 0 with a fresh hash.
func resumeAt(f io.ReadSeeker, a answer, size int64, h hash.Hash) (int64, error) {
	if a.Offset <= 0 || a.Offset > size {
		return 0, nil
	}
	if _, err := io.CopyN(h, f, a.Offset); err != nil {
		return 0, err
	}
	if hex.EncodeToString(h.Sum(nil)) == a.SHA256 {
		return a.Offset, nil
	}
	h.Reset()
	_, err := f.Seek(0, io.SeekStart)
	return 0, err
}

// sendBytes sends the file from offset on, then the seal, and waits for the verdict, which may also come early.
func sendBytes(conn net.Conn, f io.Reader, o offer, offset int64, h hash.Hash, progress func(int64)) (Result, error) {
	type reply struct {
		v   verdict
		err error
	}
	early := make(chan reply, 1)
	go func() {
		var r reply
		r.err = readMessage(conn, &r.v)
		early <- r
	}()
	fail := func(err error) (Result, error) {
		select {
		case r := <-early: // the receiver's reason beats the broken pipe that it caused
			if r.err == nil && r.v.Error != "" {
				return Result{}, fmt.Errorf("%w: %s", ErrRemote, r.v.Error)
			}
		default:
		}
		return Result{}, err
	}
	buf := make([]byte, chunk)
	for done := offset; done < o.Size; {
		n, err := f.Read(buf[:min(int64(len(buf)), o.Size-done)])
		if n == 0 && err == io.EOF {
			return Result{}, fmt.Errorf("the file shrank to %d bytes while it was sent", done)
		}
		if n == 0 && err != nil {
			return Result{}, err
		}
		h.Write(buf[:n])
		if _, err := conn.Write(buf[:n]); err != nil {
			return fail(err)
		}
		done += int64(n)
		if progress != nil {
			progress(done)
		}
		select {
		case r := <-early:
			if r.err == nil && r.v.Error != "" {
				return Result{}, fmt.Errorf("%w: %s", ErrRemote, r.v.Error)
			}
			return Result{}, errors.Join(ErrProtocol, r.err)
		default:
		}
	}
	sum := hex.EncodeToString(h.Sum(nil))
	if err := writeMessage(conn, seal{sum}); err != nil {
		return fail(err)
	}
	r := <-early
	switch {
	case r.err != nil:
		return Result{}, fmt.Errorf("everything was sent, but the receiver did not confirm it: %w", r.err)
	case r.v.Error != "":
		return Result{}, fmt.Errorf("%w: %s", ErrRemote, r.v.Error)
	case r.v.SHA256 != sum:
		return Result{}, ErrHash
	}
	return Result{o.Name, o.Size, offset, sum}, nil
}
