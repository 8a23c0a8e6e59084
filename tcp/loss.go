package tcp

// lossWindow is how many packets the loss share is averaged over; the scheduler AR&P wants 128.
const lossWindow = 128

// lossShare keeps the fate of the last 128 transmissions: a bit each, set if it was lost.
type lossShare struct {
	bits [lossWindow / 64]uint64
	pos  uint8
	used uint8
	ones uint8
}

// note records the fate of one transmission.
func (l *lossShare) note(lost bool) {
	word, bit := &l.bits[l.pos/64], uint64(1)<<(l.pos%64)
	if *word&bit != 0 {
		l.ones--
		*word &^= bit
	}
	if lost {
		l.ones++
		*word |= bit
	}
	l.pos = (l.pos + 1) % lossWindow
	if l.used < lossWindow {
		l.used++
	}
}

// share returns the share that was lost, from 0 to 1.
func (l *lossShare) share() float64 {
	if l.used == 0 {
		return 0
	}
	return float64(l.ones) / float64(l.used)
}
