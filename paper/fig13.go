package paper

import "braid/experiment"

// fig13 is Fig. 13: 4G and Wi-Fi at 5 GHz.
func fig13() Figure {
	paths := []wireless{
		{model: &lte, recorded: recordedLTE, meanMbps: 10, rttMs: 60, loss: 0.005},
		{model: &wifi5, recorded: recordedWifi5, meanMbps: 40, rttMs: 40, loss: 0.005},
	}
	return Figure{
		ID:    "fig13",
		Title: "Download speed over 4G and Wi-Fi (5 GHz)",
		Claim: "Wi-Fi at 5 GHz is faster and loses more at random than at 2.4 GHz; the proposed scheme is almost three times as fast as the original MPTCP.",
		Setup: "As Fig. 12. " + paths[0].describe() + "; " + paths[1].describe() + ".",
		Cells: func(m Mode) []experiment.Cell {
			return append(wirelessCells(m, paths, "", pick(m, 30.0, 15)), besideCells(m, paths, pick(m, 60.0, 20))...)
		},
		Real: severalPaths,
		Judge: func(_ Mode, d *Data) *Findings {
			return judgeWireless(d, paths, "Fig. 13: 4G and Wi-Fi (5 GHz)", 2.5)
		},
	}
}
