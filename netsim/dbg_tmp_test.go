package netsim
import ("testing";"flag";"fmt";"braid/clock";"braid/mptcp";"reflect")
var dbgSeed = flag.Uint64("seed", 0, "")
var dbgHook func(p *Prepared)
func TestDbg(t *testing.T) {
	dbgHook = func(p *Prepared) {
		p.Network.Every(0, 20e9, func(now clock.Time){
			for _, h := range []string{"f client", "f server"} {
			p.Hosts[h].stack.(*mptcp.Stack).Conns(func(c *mptcp.Conn) bool {
				i := c.Info(now)
				fmt.Printf("%v %s fallback %v written %d acked %d unsent %d sndwnd %d reinj %d | rcvd %d read %d ooo %d rwnd %d\n", now, h, i.Fallback, i.Written, i.Acked, i.Unsent, i.SendWindow, i.ReinjectQueue, i.Received, i.Read, i.OutOfOrder, i.ReceiveWindow)
				for _, sf := range i.Subflows { fmt.Printf("    %d path %v %s tcp %v carried %d unmapped %d infl %d retr %d backoffs %d timedout %v sent %d new %d reinj %d rcvd %d peerw %d\n", sf.ID, sf.Path, sf.State, sf.TCP.State, sf.Carried, sf.Unmapped, sf.TCP.InFlight, sf.TCP.Retrans, sf.TCP.Backoffs, sf.TimedOut, sf.TCP.SentSegs, sf.NewBytes, sf.ReinjectedBytes, sf.ReceivedBytes, sf.TCP.PeerWindow) }
				return true
			}) }
		})
	}
	err := soup(*dbgSeed)
	t.Log(err)
}
func dumpCounters(name string, c *mptcp.Counters) {
	v := reflect.ValueOf(*c); 
	var rec func(v reflect.Value)
	s := name
	rec = func(v reflect.Value) { for i := range v.NumField() { f := v.Field(i); n := v.Type().Field(i).Name
		if f.Kind() == reflect.Struct { rec(f) } else if !f.IsZero() { s += fmt.Sprintf(" %s:%v", n, f) } } }
	rec(v)
	fmt.Println(s)
}
