package congestion

// Constants of the literal reading.
const (
	cycleLeast       = 0.05 // cruise gain at and below which a subflow only keeps going
	cycleLeastWindow = 0.1
	cycleHeadroom    = 0.25 // the window gain is at least this much above the cruise gain
)

// coupledBBRCycleGroup is the literal reading of Coupled BBR (Han et al.): bandwidth is detected in the first two round trips of
// the gain cycle as BBR does, and the six others cruise at what makes the whole cycle average beta: the subflow's
// part of the best path's bandwidth. It is kept for comparison: under contention the estimate feeds on itself and everything
// slides onto one path.
type coupledBBRCycleGroup struct {
	roster[*coupledBBRCycle]
	bbr BBROptions
}

// NewCoupledBBRCycle returns the Group of the literal Coupled BBR.
func NewCoupledBBRCycle() Group { return &coupledBBRCycleGroup{} }

// coupledBBRCycle is one of its subflows.
type coupledBBRCycle struct {
	BBR
	member
	group *coupledBBRCycleGroup
}

// Join adds a subflow.
func (g *coupledBBRCycleGroup) Join(id int, cfg Config) Controller {
	return g.add(&coupledBBRCycle{BBR: newBBR(cfg, g.bbr), member: member{id: id}, group: g})
}

// OnAck is BBR's with the cruise gains of the group.
func (c *coupledBBRCycle) OnAck(s *Sample) {
	c.observe(s, s.Rate())
	if c.roundStart {
		c.cruise, c.cruiseWindow = cycleGains(c.group.beta(c))
	}
	c.control(s)
}

// beta returns max BW * BW_i / sum BW^2: the average share of its bandwidth that subflow c may use; 1 while any subflow still
// looks for its bandwidth, or c is alone.
func (g *coupledBBRCycleGroup) beta(c *coupledBBRCycle) float64 {
	var best, squares float64
	n := 0
	for _, m := range g.list {
		if m.silent {
			continue
		}
		if !m.full {
			return 1
		}
		n++
		bw := m.bandwidth.best
		best = max(best, bw)
		squares += float64(bw * bw)
	}
	if n < 2 || c.silent || squares == 0 {
		return 1
	}
	return best * c.bandwidth.best / squares
}

// cycleGains returns the gains of the cruise phases that make a cycle average beta: (1.25 + 0.75 + 6 alpha) / 8 = beta.
func cycleGains(beta float64) (pacing, window float64) {
	if beta >= 1 {
		return 1, bbrWindowGain
	}
	alpha := (float64(bbrCycleLength*beta) - bbrProbe - bbrDrain) / (bbrCycleLength - 2)
	if alpha <= cycleLeast {
		return cycleLeast, cycleLeastWindow
	}
	return alpha, max(2*alpha, alpha+cycleHeadroom)
}
