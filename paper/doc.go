// Package paper repeats the experiments of Han et al., "Leveraging Coupled BBR and Adaptive Packet Scheduling to Boost MPTCP", in the
// simulator: one file for each table or figure, with its set-up, the claim that it tests in our words, its plot, and a verdict that is
// computed from the measurements. Two tables of this project's own go along: fairness and never-worse.
//
// It draws, writes and judges. It does not run anything itself (package experiment does) and it never says what a result should
// have been other than by the thresholds of its checks.
package paper
