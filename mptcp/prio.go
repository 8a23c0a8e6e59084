package mptcp

import (
	"braid/clock"
)

// SetPriority asks the peer to use the subflow with the given number as backup, or not to, by MP_PRIO (RFC 8684, Section
// 3.3.8), and treats it so itself. It reports whether there is such a subflow.
func (c *Conn) SetPriority(now clock.Time, subflow int, backup bool) bool {
	for _, sf := range c.subflows {
		if sf.id != subflow || !sf.up() {
			continue
		}
		sf.backupLocal = backup
		if !c.fb.any() && c.state == connOpen {
			sf.data.prioDue = true
			sf.tcp.RequestAck(now)
		}
		c.views.touch(sf)
		c.views.replan()
		c.stack.wake(c)
		return true
	}
	return false
}

// takePrio obeys an MP_PRIO: it is about what we send on the subflow that it came on (RFC 8684, Section 3.3.8).
func (c *Conn) takePrio(now clock.Time, sf *Subflow, backup bool) {
	c.stack.counters.PriosReceived++
	sf.backupPeer = backup
	c.views.touch(sf)
	c.views.replan()
	c.stack.wake(c)
}
