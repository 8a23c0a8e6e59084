package script

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"braid/wire"
)

// value is what a word of a script says: a number, bytes, or text.
type value struct {
	isNumber bool
	number   int64
	bytes    []byte // a key or a HMAC
	text     string
}

func number[T ~int | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64](n T) value {
	return value{isNumber: true, number: int64(n)}
}
func octets(b []byte) value { return value{bytes: bytes.Clone(b)} }
func words(s string) value  { return value{text: s} }

// String is how the value would stand in a script.
func (v value) String() string {
	switch {
	case v.isNumber:
		return strconv.FormatInt(v.number, 10)
	case v.bytes != nil:
		return fmt.Sprintf("%x", v.bytes)
	}
	return v.text
}

// equal compares; a HMAC on the wire is the beginning of the whole one.
func (v value) equal(wire value) bool {
	switch {
	case wire.isNumber:
		return v.isNumber && v.number == wire.number
	case wire.bytes != nil:
		return v.bytes != nil && bytes.HasPrefix(v.bytes, wire.bytes)
	}
	return v.String() == wire.text
}

// key returns the value as a key.
func (v value) key() (k wire.Key, err error) {
	if v.isNumber {
		binary.BigEndian.PutUint64(k[:], uint64(v.number))
	} else if copy(k[:], v.bytes) != len(k) {
		err = fmt.Errorf("%q is no key", v)
	}
	return k, err
}

// unboundError says that an expression needs a variable that has no value.
type unboundError struct{ name string }

func (e *unboundError) Error() string { return "variable $" + e.name + " has no value" }

// variables are those of a script.
type variables map[string]value

// eval computes an expression.
func (vs variables) eval(s string) (value, error) {
	if name, ok := strings.CutPrefix(s, "$"); ok {
		v, bound := vs[name]
		if !bound {
			return v, &unboundError{name}
		}
		return v, nil
	}
	if name, rest, ok := strings.Cut(s, "("); ok && strings.HasSuffix(rest, ")") && functions[name].f != nil {
		return vs.call(name, rest[:len(rest)-1])
	}
	if n, err := strconv.ParseInt(s, 0, 64); err == nil {
		return number(n), nil
	}
	return words(s), nil
}

// call computes a function of arguments that are separated by commas.
func (vs variables) call(name, list string) (value, error) {
	var args []value
	for depth, start, i := 0, 0, 0; i <= len(list); i++ {
		switch {
		case i == len(list) || list[i] == ',' && depth == 0:
			v, err := vs.eval(list[start:i])
			if err != nil {
				return v, err
			}
			args, start = append(args, v), i+1
		case list[i] == '(':
			depth++
		case list[i] == ')':
			depth--
		}
	}
	fn := functions[name]
	if len(args) != fn.args {
		return value{}, fmt.Errorf("%s takes %d arguments, not %d", name, fn.args, len(args))
	}
	return fn.f(args)
}

// functions are what scripts compute with (RFC 8684, Sections 3.1, 3.2 and 3.4.1).
var functions = map[string]struct {
	args int
	f    func(a []value) (value, error)
}{
	"token": {1, func(a []value) (value, error) {
		k, err := a[0].key()
		return number(k.Token()), err
	}},
	"idsn": {1, func(a []value) (value, error) {
		k, err := a[0].key()
		return number(k.IDSN()), err
	}},
	"hmac": {4, func(a []value) (value, error) {
		k1, err1 := a[0].key()
		k2, err2 := a[1].key()
		m := wire.JoinMAC(k1, k2, uint32(a[2].number), uint32(a[3].number))
		return octets(m[:]), either(err1, err2)
	}},
	"addr_hmac": {5, func(a []value) (value, error) {
		k1, err1 := a[0].key()
		k2, err2 := a[1].key()
		addr, err3 := netip.ParseAddr(a[3].text)
		m := wire.AddAddrMAC(k1, k2, uint8(a[2].number), addr, uint16(a[4].number))
		return octets(m[:]), either(err1, either(err2, err3))
	}},
	"flip": {1, func(a []value) (value, error) {
		if a[0].isNumber {
			return number(a[0].number ^ 1), nil
		}
		b := bytes.Clone(a[0].bytes)
		if len(b) == 0 {
			return value{}, fmt.Errorf("flip of %q", a[0])
		}
		b[0] ^= 1
		return octets(b), nil
	}},
}

func either(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
