// Package experiment runs Scenarios in numbers: cells (one Scenario each) times seeds, on every core, with results that are kept on disk
// so that an interrupted sweep goes on where it stopped, and with the statistics that turn runs into a number and its confidence
// interval.
//
// It does not know what is measured, why, or what would be a good result: see package paper.
package experiment
