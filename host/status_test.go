package host

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"braid/mptcp"
)

// A Status shows both sides of a connection, that which waits to be accepted included, and after Close what was counted.
func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, worldConfig{paths: 2, delay: 10 * time.Millisecond})
		defer w.close()
		client, server := w.connect()
		transfer(t, client, server, pattern(200_000))
		value := func(e *Engine, name string) int64 {
			for _, m := range e.Status().Metrics {
				if m.Name == name {
					return m.Value
				}
			}
			t.Fatalf("no metric %s", name)
			return 0
		}
		c, s := w.client.Status(), w.server.Status()
		if len(c.Connections) != 1 || !c.Connections[0].Client || len(c.Connections[0].Info.Subflows) != 2 || len(c.Paths) != 2 || len(c.Listeners) != 0 {
			t.Errorf("client: %+v", c)
		}
		if len(s.Connections) != 1 || s.Connections[0].Client || s.Connections[0].Info.Received != 200_000 || len(s.Listeners) != 1 || s.Listeners[0].Port() != serverAddr.Port() {
			t.Errorf("server: %+v", s)
		}
		if c.Connections[0].Remote != serverAddr || s.Connections[0].Local.Port() != serverAddr.Port() {
			t.Errorf("from %v to %v", s.Connections[0].Local, c.Connections[0].Remote)
		}
		if value(w.client, "MPTcpExtMPJoinSynTx") != 1 || value(w.server, "MPTcpExtMPJoinAckRx") != 1 {
			t.Errorf("client %+v, server %+v", c.Metrics, s.Metrics)
		}
		var waiting *mptcp.Info
		second, err := w.client.Dial(t.Context(), []netip.AddrPort{serverAddr}, nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for _, x := range w.server.Status().Connections {
			if x.ID != s.Connections[0].ID {
				waiting = &x.Info
			}
		}
		if waiting == nil || !waiting.Established {
			t.Errorf("the one that waits: %+v", waiting)
		}
		second.Abort()
		w.client.Close()
		if left := w.client.Status(); len(left.Connections) != 0 || value(w.client, "TcpActiveOpens") < 3 || value(w.client, "TcpCurrEstab") != 0 {
			t.Errorf("after Close: %+v", left)
		}
	})
}
