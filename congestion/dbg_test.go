package congestion
import ("testing";"time")
func TestDbg(t *testing.T){
 for _, name := range []string{"coupledbbr","coupledbbr-cycle","bbr","lia","olia","balia"} {
  n := &network{}
  n.connect(name, 1, 0, newBottleneck(100, 50*time.Millisecond, 1, 0, 3), newBottleneck(100, 50*time.Millisecond, 1, 0, 4))
  m, r := n.measure(20*time.Second, 60*time.Second)
  t.Logf("%s free 100+100: %.1f %.1f rtt %.1f %.1f", name, m[0], m[1], r[0], r[1])
 }
 for _, name := range []string{"coupledbbr","coupledbbr-cycle","bbr"} {
 for _, k := range []int{1,2,4} { for _, buf := range []float64{1,4} {
  sum,sb,s0,ss := 0.0,0.0,0.0,0.0
  for seed := uint64(1); seed<=2; seed++ {
  n := &network{}
  l1,l2 := newBottleneck(100, 50*time.Millisecond, buf, 0, 3), newBottleneck(100, 50*time.Millisecond, buf, 0, 4)
  n.connect(name, seed, 0, l1,l2)
  for i:=0;i<k;i++ { n.connect("bbr", 100*seed+uint64(i), time.Duration(i)*100*time.Millisecond, l1); n.connect("bbr", 200*seed+uint64(i), time.Duration(i)*130*time.Millisecond, l2) }
  m, _ := n.measure(30*time.Second, 90*time.Second)
  // reference
  n = &network{}
  l1 = newBottleneck(100, 50*time.Millisecond, buf, 0, 3)
  n.connect("bbr", seed, 0, l1)
  for i:=0;i<k;i++ { n.connect("bbr", 100*seed+uint64(i), time.Duration(i)*100*time.Millisecond, l1) }
  mr, _ := n.measure(30*time.Second, 90*time.Second)
  sum+=m[0]+m[1]; sb+=mr[0]; s0+=m[0]; ss+=min(m[0],m[1])
  }
  t.Logf("%s k=%d buf %g: total %.1f ref %.1f ratio %.2f first %.1f min share %.2f", name,k,buf,sum/2,sb/2,sum/sb,s0/2, ss/sum)
 }}}
}
