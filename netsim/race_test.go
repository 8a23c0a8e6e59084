//go:build race

package netsim

// raceDetector says that tests run under the race detector, which makes them some ten times slower.
const raceDetector = true
