package mptcp

import (
	"testing"
	"time"
)

// A Stack that is short of memory is slow, not stuck: all connections come to their end, and memory stays near its bound
// although each of them could use far more (SEC-07).
func TestShortMemory(t *testing.T) {
	small := Config{StackMemory: 2 << 20, InitialReceive: 64 << 10}
	w := newWorld(t, small, small)
	for i := range 2 {
		l := w.link(time.Duration(20+30*i) * time.Millisecond)
		l.rate, l.limit = 4e6, 60*time.Millisecond
	}
	l := w.listen()
	var streams []*stream
	for range 12 {
		c, s := w.connect(l)
		streams = append(streams, w.stream(c, s, 700_000), w.stream(s, c, 300_000))
	}
	most := int64(0)
	limit := w.now.Add(3 * time.Minute)
	for done := false; !done; {
		if w.now > limit {
			t.Fatal("stuck")
		}
		w.step(w.now.Add(time.Second))
		most = max(most, w.client.Memory(), w.server.Memory())
		done = true
		for _, s := range streams {
			done = done && s.eof
		}
	}
	if most > 4<<20 {
		t.Errorf("%d bytes at most, the limit is %d", most, small.StackMemory)
	}
}

// Info tells what happened: every byte is accounted for.
func TestInfo(t *testing.T) {
	w := newWorld(t, Config{}, Config{})
	for i := range 2 {
		l := w.link(time.Duration(10+40*i) * time.Millisecond)
		l.rate, l.limit, l.loss = 2e6, 60*time.Millisecond, 0.005
	}
	c, s := w.connect(w.listen())
	st := w.stream(c, s, 10_000_000)
	w.run(3 * time.Second)
	i, j := c.Info(w.now), s.Info(w.now)
	if i.NewBytes != i.Written-i.Unsent || j.Received != int64(st.read)+j.Readable || i.Acked > j.Received || j.Received > i.Written {
		t.Errorf("%+v\n%+v", i, j)
	}
	if len(i.Subflows) != 2 || i.Subflows[0].PathName != "c0" || i.Subflows[1].PathName != "c1" || !i.Subflows[0].Initial {
		t.Errorf("%+v", i.Subflows)
	}
	var onSubflows int64
	for _, sf := range j.Subflows {
		onSubflows += sf.ReceivedBytes
	}
	if onSubflows != j.Received+j.OutOfOrder+j.DuplicateBytes {
		t.Errorf("%d bytes came on the subflows; %d in order, %d waiting, %d twice", onSubflows, j.Received, j.OutOfOrder, j.DuplicateBytes)
	}
	if j.Arrivals == 0 || j.OutOfOrderMaxPackets == 0 || j.OutOfOrderPacketSum/float64(j.Arrivals) > float64(j.OutOfOrderMaxPackets) {
		t.Errorf("queue: %+v", j)
	}
	if i.Subflows[0].TCP.SRTT < 20*time.Millisecond || i.Subflows[1].TCP.SRTT < 100*time.Millisecond || i.Subflows[0].State != "active" {
		t.Errorf("%+v", i.Subflows)
	}
	if !w.until(time.Minute, func() bool { return st.eof }) {
		t.Fatal("not done")
	}
	local, remote := c.LocalAddr(), c.RemoteAddr()
	w.run(time.Minute)
	if c.LocalAddr() != local || c.RemoteAddr() != remote || remote.Port() != serverPort { // API-02
		t.Errorf("addresses %v %v", c.LocalAddr(), c.RemoteAddr())
	}
}
