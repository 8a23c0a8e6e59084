package tcp

import (
	"testing"

	"braid/clock"

	"pgregory.net/rapid"
)

// sentModel is the queue as a plain slice of records in order.
type sentModel struct {
	recs     []modelRecord
	released int64
	now      clock.Time
}

type modelRecord struct {
	start  int64
	size   int
	state  recordState
	sentAt clock.Time
}

// The queue agrees with a plain slice, whatever is pushed, sent, split, SACKed, lost, acknowledged and released, and in what order.
func TestSentQueueModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q sentQueue
		q.init()
		m := sentModel{released: 1}
		end := int64(1)
		head, unsent := 0, 0
		pick := func(state recordState) int { // a record in a state, -1 if there is none
			var all []int
			for i, r := range m.recs {
				if r.state == state {
					all = append(all, i)
				}
			}
			if len(all) == 0 {
				return -1
			}
			return rapid.SampledFrom(all).Draw(t, "record")
		}
		move := func(i int, to recordState) {
			q.move(q.at(q.oldest+uint32(i)), to)
			m.recs[i].state = to
		}
		fly := func(i int) {
			m.now += clock.Time(rapid.Int64Range(0, 2).Draw(t, "wait"))
			q.slab[q.at(q.oldest+uint32(i))].sentAt = m.now
			m.recs[i].sentAt = m.now
			move(i, recFlying)
		}
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			switch rapid.IntRange(0, 8).Draw(t, "step") {
			case 0, 1:
				n := rapid.IntRange(1, 50).Draw(t, "size")
				q.push(end, end-1, n, false)
				m.recs = append(m.recs, modelRecord{start: end, size: n})
				end += int64(n)
			case 2, 3:
				if unsent < len(m.recs) {
					q.unsent++
					fly(unsent)
					unsent++
				}
			case 4:
				if i := pick(recLost); i >= 0 {
					fly(i)
				}
			case 5:
				if i := pick(recFlying); i >= 0 {
					move(i, recLost)
				}
			case 6:
				if rapid.Bool().Draw(t, "refly") {
					q.refly()
					for i := range m.recs {
						if m.recs[i].state == recLost {
							m.recs[i].state = recFlying
						}
					}
				} else if i := pick(recFlying); i >= 0 {
					move(i, recSacked)
				}
			case 7:
				if head < unsent {
					move(head, recAcked)
					q.head++
					head++
				} else if c, ok := q.release(); ok {
					if c.Start != m.released || c.ID != c.Start-1 || c.Len != m.recs[0].size {
						t.Fatalf("released %v, model %+v", c, m.recs[0])
					}
					m.released += int64(c.Len)
					m.recs, head, unsent = m.recs[1:], head-1, unsent-1
				}
			case 8:
				if len(m.recs) == head {
					break
				}
				i := rapid.IntRange(head, len(m.recs)-1).Draw(t, "split")
				if r := m.recs[i]; r.size > 1 {
					n := rapid.IntRange(1, r.size-1).Draw(t, "at")
					q.split(q.oldest+uint32(i), n)
					a, b := r, r
					a.size, b.size, b.start = n, r.size-n, r.start+int64(n)
					rest := append([]modelRecord{a, b}, m.recs[i+1:]...)
					m.recs = append(m.recs[:i:i], rest...)
					if i < unsent {
						unsent++
					}
				}
			}
			compareSent(t, &q, &m, head, unsent)
		}
	})
}

func compareSent(t *rapid.T, q *sentQueue, m *sentModel, head, unsent int) {
	if int(q.tail-q.oldest) != len(m.recs) || int(q.head-q.oldest) != head || int(q.unsent-q.oldest) != unsent {
		t.Fatalf("positions %d %d %d, model %d %d %d", q.head-q.oldest, q.unsent-q.oldest, q.tail-q.oldest, head, unsent, len(m.recs))
	}
	var bytes [recordStates]int64
	for i, want := range m.recs {
		r := &q.slab[q.at(q.oldest+uint32(i))]
		if got := (modelRecord{r.start, int(r.size), r.state, r.sentAt}); got != want {
			t.Fatalf("record %d is %+v, model %+v", i, got, want)
		}
		bytes[r.state] += int64(want.size)
		if i >= head && i < unsent {
			for _, o := range []int64{r.start, r.end() - 1} {
				if p := q.find(o); p != q.oldest+uint32(i) {
					t.Fatalf("found offset %d at %d, want %d", o, p-q.oldest, i)
				}
			}
			q.hint = q.oldest + uint32(i) // any hint is harmless
		}
	}
	if bytes != q.bytes {
		t.Fatalf("bytes %v, model %v", q.bytes, bytes)
	}
	checkList(t, q, &q.flying, recFlying, func(a, b *record) bool { return a.sentAt <= b.sentAt })
	checkList(t, q, &q.lost, recLost, func(a, b *record) bool { return a.start < b.start })
}

// recordMoves is the whole truth: any other change is our mistake and panics with both names.
func TestRecordMoves(t *testing.T) {
	for from := recUnsent; from < recordStates; from++ {
		for to := recUnsent; to < recordStates; to++ {
			var q sentQueue
			q.init()
			i := q.push(1, 0, 10, false)
			path := map[recordState][]recordState{
				recFlying: {recFlying}, recLost: {recFlying, recLost}, recSacked: {recFlying, recSacked}, recAcked: {recFlying, recAcked},
			}
			for _, st := range path[from] {
				q.move(i, st)
			}
			panicked := func() (p any) {
				defer func() { p = recover() }()
				q.move(i, to)
				return nil
			}()
			if (panicked == nil) != recordMoves[from][to] {
				t.Errorf("%v to %v: %v", from, to, panicked)
			}
		}
	}
}

// A FIN stays with the last part of a split, and is released silently.
func TestSplitKeepsFIN(t *testing.T) {
	var q sentQueue
	q.init()
	i := q.push(1, 0, 10, true)
	q.split(q.oldest, 10)
	a, b := &q.slab[i], &q.slab[q.at(q.oldest+1)]
	if a.fin || !b.fin || b.size != 0 || a.end() != 11 || b.start != 11 || b.end() != 12 {
		t.Fatalf("parts %+v %+v", a, b)
	}
	for range 2 {
		q.unsent++
		q.move(q.at(q.head), recFlying)
		q.move(q.at(q.head), recAcked)
		q.head++
	}
	if c, ok := q.release(); !ok || c.Len != 10 {
		t.Fatalf("released %v %v", c, ok)
	}
	if c, ok := q.release(); ok || !q.empty() || len(q.free) != len(q.slab) {
		t.Fatalf("the FIN was released as %v, or stayed", c)
	}
}

// An idle queue gives its memory back, and works again afterwards.
func TestShrink(t *testing.T) {
	var q sentQueue
	q.init()
	for round := range 2 {
		for i := range 1000 {
			q.push(int64(1+i), 0, 1, false)
			q.unsent++
			q.move(q.at(q.unsent-1), recFlying)
		}
		q.shrink()
		if len(q.slab) < 1000 {
			t.Fatal("shrunk while in use")
		}
		for range 1000 {
			q.move(q.at(q.head), recAcked)
			q.head++
		}
		for ok := true; ok; {
			_, ok = q.release()
		}
		q.shrink()
		if q.slab != nil || q.order != nil || q.free != nil {
			t.Fatalf("round %d: memory kept", round)
		}
	}
}
