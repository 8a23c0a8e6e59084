//go:build !unix

package host

import "time"

// processorTime is not known here.
func processorTime() time.Duration { return 0 }
