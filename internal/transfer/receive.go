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
	"strings"
)

// partSuffix marks a file that has not arrived whole.
const partSuffix = ".part"

// Receiver stores what is sent to it.
type Receiver struct {
	Dir      string                                 // folder for the files; must exist
	Replace  bool                                   // overwrite a finished file of the same name
	Offered  func(name string, size, resumed int64) // if not nil: told before the first byte
	Progress func(done int64)                       // if not nil: called after each piece with the bytes of the file that are here
}

// Receive takes one file from the sender at the other end of conn. It is kept as NAME.part until it is whole and its hash agrees; an
// interrupted transfer leaves the part for the next one to resume. It does not close conn.
func (rc *Receiver) Receive(conn net.Conn) (Result, error) {
	var o offer
	if err := readMessage(conn, &o); err != nil {
		return Result{}, err
	}
	if o.Magic != magic {
		return Result{}, ErrProtocol
	}
	final, err := rc.place(o)
	if err != nil {
		return Result{}, errors.Join(err, writeMessage(conn, answer{Error: err.Error()}))
	}
	part, err := os.OpenFile(final+partSuffix, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return Result{}, errors.Join(err, writeMessage(conn, answer{Error: err.Error()}))
	}
	defer part.Close()
	res, err := rc.fill(conn, part, o)
	if err != nil {
		return Result{}, err
	}
	if err := finish(part, final, o); err != nil {
		return Result{}, errors.Join(err, writeMessage(conn, verdict{Error: err.Error()}))
	}
	return res, writeMessage(conn, verdict{SHA256: res.SHA256})
}

// place checks the offered name and returns where the file goes.
func (rc *Receiver) place(o offer) (string, error) {
	if o.Name == "" || o.Name == "." || o.Name == ".." || strings.ContainsAny(o.Name, "/\\\x00") || o.Size < 0 {
		return "", fmt.Errorf("refused: %q of %d bytes is not a file name and size to store", o.Name, o.Size)
	}
	final := filepath.Join(rc.Dir, o.Name)
	if _, err := os.Lstat(final); err == nil && !rc.Replace {
		return "", fmt.Errorf("refused: %s exists at the receiver (recv --replace overwrites)", o.Name)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return final, nil
}

// fill answers the offer with what part holds and takes the rest of the file into it.
func (rc *Receiver) fill(conn net.Conn, part *os.File, o offer) (Result, error) {
	h := sha256.New()
	have, err := io.Copy(h, io.LimitReader(part, o.Size))
	if err != nil {
		return Result{}, err
	}
	if err := writeMessage(conn, answer{Offset: have, SHA256: hex.EncodeToString(h.Sum(nil))}); err != nil {
		return Result{}, err
	}
	var s start
	if err := readMessage(conn, &s); err != nil {
		return Result{}, err
	}
	switch s.Offset {
	case have:
	case 0: // those were another file's bytes
		h.Reset()
	default:
		return Result{}, fmt.Errorf("%w (it starts at %d, not at %d or 0)", ErrProtocol, s.Offset, have)
	}
	if err := part.Truncate(s.Offset); err != nil {
		return Result{}, err
	}
	if _, err := part.Seek(s.Offset, io.SeekStart); err != nil {
		return Result{}, err
	}
	if rc.Offered != nil {
		rc.Offered(o.Name, o.Size, s.Offset)
	}
	if err := rc.copyBytes(conn, part, h, s.Offset, o.Size); err != nil {
		return Result{}, err
	}
	var se seal
	if err := readMessage(conn, &se); err != nil {
		return Result{}, err
	}
	sum := hex.EncodeToString(h.Sum(nil))
	if sum != se.SHA256 {
		part.Truncate(0) // resuming from bytes that are wrong would fail for ever
		return Result{}, errors.Join(ErrHash, writeMessage(conn, verdict{Error: ErrHash.Error()}))
	}
	return Result{o.Name, o.Size, s.Offset, sum}, nil
}

// copyBytes takes the bytes from offset to size. A disk that refuses them is reported to the sender at once.
func (rc *Receiver) copyBytes(conn net.Conn, part io.Writer, h hash.Hash, offset, size int64) error {
	buf := make([]byte, chunk)
	for done := offset; done < size; {
		n, err := conn.Read(buf[:min(int64(len(buf)), size-done)])
		if n > 0 {
			if _, werr := part.Write(buf[:n]); werr != nil {
				return errors.Join(werr, writeMessage(conn, verdict{Error: werr.Error()}))
			}
			h.Write(buf[:n])
			done += int64(n)
			if rc.Progress != nil {
				rc.Progress(done)
			}
		}
		if err != nil && done < size {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("stopped after %d of %d bytes (kept as %s; send again to resume): %w", done, size, partSuffix, err)
		}
	}
	return nil
}

// finish makes the part the file: on disk, with its mode, under its name.
func finish(part *os.File, final string, o offer) error {
	if err := part.Sync(); err != nil {
		return err
	}
	if err := part.Chmod(fs.FileMode(o.Mode).Perm() &^ 0o022); err != nil {
		return err
	}
	if err := part.Close(); err != nil {
		return err
	}
	return os.Rename(final+partSuffix, final)
}
