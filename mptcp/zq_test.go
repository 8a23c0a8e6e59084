package mptcp
import ("testing";"time";"fmt";"braid/congestion";"braid/schedule")
func TestZQ(t *testing.T) {
	for _, sc := range []string{"minrtt","roundrobin","arp","redundant","ecf","blest"} {
	for _, cc := range []string{"bbr","cubic","coupledbbr","lia"} {
		cfg := Config{}
		cfg.Scheduler, _ = schedule.ByName(sc)
		cfg.Group, _ = congestion.ByName(cc)
		w := newWorld(t, cfg, cfg)
		for _, d := range []time.Duration{10, 40} {
			l := w.link(d*time.Millisecond); l.rate = 12.5e6/2; l.limit = 2*d*time.Millisecond
		}
		c, s := w.connect(w.listen())
		st := w.stream(c, s, 1<<40)
		w.run(3*time.Second); b0 := st.read
		i0 := s.Info(w.now)
		w.run(10*time.Second)
		i := c.Info(w.now); si := s.Info(w.now)
		fmt.Printf("%-10s %-10s goodput %.2f of sum; limit %dK rcvbuf %dK ooo mean %.1f pkts max %d; new %d reinj %d copy %d dup %d;", sc, cc, float64(st.read-b0)/10/(12.5e6*0.9467), i.SendLimit>>10, si.ReceiveBuffer>>10, (si.OutOfOrderPacketSum-i0.OutOfOrderPacketSum)/float64(si.Arrivals-i0.Arrivals), si.OutOfOrderMaxPackets, i.NewBytes>>10, i.ReinjectedBytes>>10, i.RedundantBytes>>10, si.DuplicateBytes>>10)
		for _, sf := range i.Subflows { fmt.Printf(" [%d: new %dK retr %dK srtt %v]", sf.ID, sf.NewBytes>>10, sf.TCP.RetransBytes>>10, sf.TCP.SRTT.Round(time.Millisecond)) }
		fmt.Println()
	}}
}
