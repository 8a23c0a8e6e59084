package script

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// call runs a call of the tested host's application: listen, accept [none], connect, connected [nothing|refused|timeout|reset], read TEXT (or an outcome, or
// len=N), write TEXT (or an outcome behind it, or len=N), shutdown, close, abort, mptcp yes|no, endpoint add|change|delete ADDRESS FLAGS.
func (r *Runner) call(w []string) error {
	r.lastAt = r.back.Now() // what the host says to it may leave before the call comes back
	return r.doCall(w[0], w[1:])
}

func (r *Runner) doCall(name string, w []string) error {
	switch name {
	case "listen":
		return r.back.Listen(netip.AddrPortFrom(r.hostAddr(), servicePort))
	case "accept":
		return r.accept(len(w) == 0)
	case "connect":
		return r.back.Connect(netip.AddrPortFrom(r.peerAddr(), servicePort))
	case "connected":
		return r.outcome(strings.Join(w, " "), r.back.Connected)
	case "read":
		return r.read(w[0])
	case "write":
		return r.write(w)
	case "shutdown":
		return r.back.Shutdown()
	case "close":
		return r.back.Close()
	case "abort":
		return r.back.Abort()
	case "mptcp":
		want := w[0] == "yes"
		if !r.back.Until(func() bool { return r.back.MPTCP() == want }) {
			return fmt.Errorf("the connection is MPTCP: %t", !want)
		}
		return nil
	case "endpoint":
		addr, err := netip.ParseAddr(w[1])
		if err != nil {
			return err
		}
		return r.back.Endpoint(w[0], addr, w[2:])
	}
	return fmt.Errorf("unknown call %q", name)
}

func (r *Runner) accept(want bool) error {
	if !want {
		if r.back.Accept() {
			return fmt.Errorf("there is a connection")
		}
		return nil
	}
	if !r.back.Until(r.back.Accept) {
		return fmt.Errorf("there is no connection")
	}
	return nil
}

// outcome waits until a call has the outcome that the script wants.
func (r *Runner) outcome(want string, f func() Outcome) error {
	var got Outcome
	if !r.back.Until(func() bool { got = f(); return string(got) == want || got != Nothing && got != OK }) || string(got) != want {
		return fmt.Errorf("outcome %q, want %q", got, want)
	}
	return nil
}

// outcomes are those that a script can ask for by name.
var outcomes = map[string]bool{string(Nothing): true, string(EOF): true, string(Reset): true, string(Refused): true, string(Timeout): true, string(Broken): true}

// read checks what the application reads.
func (r *Runner) read(want string) error {
	if want == string(Nothing) {
		if b, out := r.back.Read(1 << 16); out != Nothing {
			return fmt.Errorf("read %q %s", b, out)
		}
		return nil
	}
	if outcomes[want] {
		return r.outcome(want, func() Outcome {
			b, out := r.back.Read(1 << 16)
			if len(b) > 0 {
				return Outcome(b)
			}
			return out
		})
	}
	text := []byte(want)
	if n, ok := strings.CutPrefix(want, "len="); ok {
		size, err := strconv.Atoi(n)
		if err != nil {
			return err
		}
		text = filler(size)
	}
	var got []byte
	var end Outcome
	r.back.Until(func() bool {
		b, out := r.back.Read(len(text) - len(got))
		got = append(got, b...)
		end = out
		return len(got) >= len(text) || out != Nothing && out != OK
	})
	if string(got) != string(text) {
		return fmt.Errorf("read %d bytes %.40q %s", len(got), got, end)
	}
	return nil
}

// write writes text, and checks the outcome if the line names one.
func (r *Runner) write(w []string) error {
	text := []byte(w[0])
	if n, ok := strings.CutPrefix(w[0], "len="); ok {
		size, err := strconv.Atoi(n)
		if err != nil {
			return err
		}
		text = filler(size)
	}
	if len(w) > 1 {
		return r.outcome(w[1], func() Outcome { _, out := r.back.Write(text); return out })
	}
	if n, out := r.back.Write(text); out != OK || n != len(text) {
		return fmt.Errorf("wrote %d bytes: %s", n, out)
	}
	return nil
}
