package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"braid/mptcp"
)

// samples are what both ends counted over time.
type samples struct {
	names     []string
	at        []float64 // seconds
	read      []int64   // handed in order to the receiving application
	paths     [][]int64 // delivered over each path, as acknowledged to the sender
	cut, back float64   // when the first path was cut, and restored

	seen map[int]int64 // delivered by each subflow at the last sample
}

// take notes what the receiver's application has read and what the sender's subflows have delivered. A subflow that was
// replaced keeps what it did.
func (s *samples) take(at float64, read int64, sender mptcp.Info) {
	per := make([]int64, len(s.names))
	if n := len(s.paths); n > 0 {
		copy(per, s.paths[n-1])
	}
	if s.seen == nil {
		s.seen = map[int]int64{}
	}
	for _, sf := range sender.Subflows {
		if i := slices.Index(s.names, sf.PathName); i >= 0 {
			per[i] += sf.TCP.Delivered - s.seen[sf.ID]
			s.seen[sf.ID] = sf.TCP.Delivered
		}
	}
	s.at = append(s.at, at)
	s.read = append(s.read, read)
	s.paths = append(s.paths, per)
}

// rate returns the Mbit/s of a count between two times.
func (s *samples) rate(count func(i int) int64, from, to float64) float64 {
	a, b := s.find(from), s.find(to)
	if b <= a {
		return 0
	}
	return float64(count(b)-count(a)) * 8 / 1e6 / (s.at[b] - s.at[a])
}

func (s *samples) goodput(from, to float64) float64 {
	return s.rate(func(i int) int64 { return s.read[i] }, from, to)
}

func (s *samples) path(p int, from, to float64) float64 {
	return s.rate(func(i int) int64 { return s.paths[i][p] }, from, to)
}

// find returns the last sample at or before t, the first if there is none.
func (s *samples) find(t float64) int {
	i := 0
	for i+1 < len(s.at) && s.at[i+1] <= t {
		i++
	}
	return i
}

func (s *samples) end() float64 { return s.at[len(s.at)-1] }

// recovery returns how long after t a window of 0.5 s begins whose goodput is at least want, the two seconds from there on too: one
// burst out of the out-of-order queue is no recovery.
func (s *samples) recovery(t, want, until float64) moment {
	for _, at := range s.at {
		if at >= t && at+0.5 <= until && s.goodput(at, at+0.5) >= want && s.goodput(at, min(at+2, until)) >= want {
			return moment(at - t)
		}
	}
	return never
}

// moment is a number of seconds after an event, or never.
type moment float64

const never moment = -1

// String says it for people.
func (m moment) String() string {
	if m == never {
		return "never"
	}
	return fmt.Sprintf("%.2f", float64(m))
}

// MarshalJSON makes never null.
func (m moment) MarshalJSON() ([]byte, error) {
	if m == never {
		return []byte("null"), nil
	}
	return json.Marshal(float64(m))
}

// judge computes what the samples say.
func (s *samples) judge(r *demoResult) {
	r.Before_mbps = s.goodput(2, s.cut)
	r.During_mbps = s.goodput(s.cut+1, s.back)
	r.After_mbps = s.goodput(s.back+2, s.end()-0.2)
	r.Recovery_s = s.recovery(s.cut, 0.9*r.Alone_mbps[s.names[1]], s.back)
	r.Full_s = s.recovery(s.back, 0.9*r.Before_mbps, s.end())
	r.Return_s = never
	for _, at := range s.at {
		if at > s.back && s.path(0, s.back, at) > 0 {
			r.Return_s = moment(at - s.back)
			break
		}
	}
}

// bar is the line that shows the last half second.
func (s *samples) bar(now float64) string {
	from := now - lookEvery.Seconds()
	var b strings.Builder
	fmt.Fprintf(&b, "%5.1f s ", now)
	for i, name := range s.names {
		v := s.path(i, from, now)
		fmt.Fprintf(&b, " %s %5.1f %-*s", name, v, []int{20, 11}[i%2], bars(v))
	}
	fmt.Fprintf(&b, " goodput_mbps %5.1f", s.goodput(from, now))
	return b.String()
}

// plot draws each path's throughput and the goodput.
func (s *samples) plot(file string, r *demoResult) error {
	const window = 0.25
	var lines []line
	add := func(name string, colour int, fill bool, rate func(from, to float64) float64) {
		l := line{name: name, fill: fill, colour: black}
		if colour >= 0 {
			l.colour = palette(colour)
		}
		for t := window; t <= s.end(); t += window {
			l.time_s = append(l.time_s, t-window/2)
			l.value = append(l.value, rate(t-window, t))
		}
		lines = append(lines, l)
	}
	for i, name := range s.names {
		add(name, i, true, func(from, to float64) float64 { return s.path(i, from, to) })
	}
	add("goodput", -1, false, s.goodput)
	title := fmt.Sprintf("One file over two paths: %.0f Mbit/s together, %.0f and %.0f alone", r.Before_mbps, r.Alone_mbps[s.names[0]], r.Alone_mbps[s.names[1]])
	return plotOverTime(file, title, "Mbit/s", lines, []mark{{s.cut, s.names[0] + " cut"}, {s.back, s.names[0] + " back"}})
}
