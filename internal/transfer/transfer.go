// Package transfer moves one file over one stream and proves that it arrived: an offer, an answer that says where to resume,
// the bytes, and a SHA-256 that both ends computed.
//
// It knows nothing of paths or of MPTCP: any net.Conn will do. It neither dials nor listens, and shows nothing to anyone.
//
// On the wire each control message is a line of JSON with its length in front; see message. The receiver may answer with a
// verdict at any time, also in the middle of the bytes (its disk is full): the sender then stops and reports it.
package transfer

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// magic opens a transfer: a peer that says something else is not speaking this protocol.
const magic = "braid-transfer-1"

// maxMessage bounds a control message: the largest is an offer with a long file name.
const maxMessage = 64 << 10

// ErrProtocol says that the peer does not speak this protocol, or broke it.
var ErrProtocol = errors.New("the other end does not speak braid's file transfer")

// ErrRemote wraps what the other end reported as its failure.
var ErrRemote = errors.New("the other end reports")

// ErrHash says that the bytes that arrived are not the bytes that were sent.
var ErrHash = errors.New("SHA-256 differs: what arrived is not what was sent")

// offer is the sender's first message.
type offer struct {
	Magic string `json:"magic"`
	Name  string `json:"name"`
	Size  int64  `json:"size"`
	Mode  uint32 `json:"mode"`
}

// answer is the receiver's reply: how much it holds already, and the hash of that, so that the sender can tell whether it is a
// prefix of the same file.
type answer struct {
	Offset int64  `json:"offset"`
	SHA256 string `json:"sha256"`
	Error  string `json:"error,omitempty"`
}

// start is where the sender begins: the answer's offset, or 0 when the receiver's bytes are another file's.
type start struct {
	Offset int64 `json:"offset"`
}

// seal ends the bytes with the hash of the whole file.
type seal struct {
	SHA256 string `json:"sha256"`
}

// verdict is the receiver's last word.
type verdict struct {
	SHA256 string `json:"sha256,omitempty"`
	Error  string `json:"error,omitempty"`
}

// Result is what a finished transfer says.
type Result struct {
	Name    string // as stored or sent
	Size    int64  // bytes of the whole file
	Resumed int64  // bytes that were there already
	SHA256  string // of the whole file, compared at both ends
}

func writeMessage(w io.Writer, m any) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	return err
}

func readMessage(r io.Reader, m any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxMessage {
		return fmt.Errorf("%w (a message of %d bytes)", ErrProtocol, n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	if err := json.Unmarshal(body, m); err != nil {
		return fmt.Errorf("%w (%v)", ErrProtocol, err)
	}
	return nil
}
