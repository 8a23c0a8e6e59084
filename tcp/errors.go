package tcp

import "errors"

// Why a Conn closed, as Err reports it. An orderly close has none.
var (
	ErrReset          = errors.New("tcp: connection reset by peer")
	ErrRefused        = errors.New("tcp: connection refused")
	ErrTimeout        = errors.New("tcp: peer does not answer")
	ErrAborted        = errors.New("tcp: connection aborted")
	ErrUnreachable    = errors.New("tcp: destination unreachable")
	ErrDataAfterClose = errors.New("tcp: data arrived after the connection was closed")
)
