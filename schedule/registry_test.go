package schedule

import (
	"slices"
	"strings"
	"testing"
)

func TestByName(t *testing.T) {
	names := Names()
	if !slices.IsSorted(names) {
		t.Errorf("names %v are not sorted", names)
	}
	for _, name := range names {
		if newScheduler, err := ByName(name); err != nil || newScheduler() == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := ByName("maxrtt")
	if err == nil {
		t.Fatal("an unknown name is known")
	}
	for _, name := range names {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%q does not list %s", err, name)
		}
	}
}
