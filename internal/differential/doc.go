// Package differential holds a test and nothing else: one script is run in the simulator and on the host's engine over an in-memory
// device, and both must send the same packets at the same times. It is why results of the simulator say something about the
// program that users run.
package differential
