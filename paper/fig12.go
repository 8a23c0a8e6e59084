package paper

import "braid/experiment"

// fig12 is Fig. 12: 4G and Wi-Fi at 2.4 GHz.
func fig12() Figure {
	paths := []wireless{
		{model: &lte, recorded: recordedLTE, meanMbps: 10, rttMs: 60, loss: 0.005},
		{model: &wifi24, recorded: recordedWifi, meanMbps: 20, rttMs: 40, loss: 0.002},
	}
	return Figure{
		ID:    "fig12",
		Title: "Download speed over 4G and Wi-Fi (2.4 GHz)",
		Claim: "Wi-Fi is twice as fast as 4G, which loses more. The proposed scheme downloads about twice as fast as the original MPTCP, faster than single-path flows, and is no more aggressive than the best single BBR flow.",
		Setup: "Trace-driven paths (see docs/paper.md). " + paths[0].describe() + "; " + paths[1].describe() + ". Original: LIA, OLIA, BALIA with minRTT. Fairness in runs of their own with a BBR flow on each link.",
		Cells: func(m Mode) []experiment.Cell {
			return append(wirelessCells(m, paths, "", pick(m, 30.0, 15)), besideCells(m, paths, pick(m, 60.0, 30))...)
		},
		Real: severalPaths,
		Judge: func(_ Mode, d *Data) *Findings {
			return judgeWireless(d, paths, "Fig. 12: 4G and Wi-Fi (2.4 GHz)", 1.6)
		},
	}
}
