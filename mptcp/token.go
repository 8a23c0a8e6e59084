package mptcp

import (
	"encoding/binary"

	"braid/wire"
)

// keyTries bounds the draws for a key. Each draw of 32 token bits fails with the share of tokens in use, and of shards that are not ours.
const keyTries = 4096

// newKey draws a key whose token is not in use and belongs to this shard (RFC 8684, Section 3.1), and reserves the token. ok is
// false if there was none.
func (s *Stack) newKey() (key wire.Key, token uint32, ok bool) {
	for range keyTries {
		binary.BigEndian.PutUint64(key[:], s.cfg.Entropy())
		token = key.Token()
		if s.usableToken(token) {
			s.tokens[token] = nil
			return key, token, true
		}
	}
	return key, 0, false
}

// usableToken reports whether a token is free and belongs to this shard.
func (s *Stack) usableToken(token uint32) bool {
	_, used := s.tokens[token]
	return !used && int(token%uint32(s.cfg.Shards)) == s.cfg.Shard
}

// freeToken gives a reserved token back.
func (s *Stack) freeToken(token uint32) { delete(s.tokens, token) }

// register makes a connection reachable under its token: joins to it may come.
func (s *Stack) register(c *Conn) {
	s.tokens[c.hs.localToken] = c
	c.hs.registered = true
}

// unregister takes c's token out of the table: joins to it are refused from now on (fallback, both DATA_FINs acknowledged, abort).
func (s *Stack) unregister(c *Conn) {
	if !c.hs.registered {
		return
	}
	c.hs.registered = false
	s.freeToken(c.hs.localToken)
}
