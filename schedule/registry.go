package schedule

import (
	"fmt"
	"strings"
)

// schedulers names them. A new one is one line here, one file, one test; the conformance test reads this table.
var schedulers = [...]struct {
	name string
	make func() Scheduler
}{
	{"ar", func() Scheduler { return NewARP(ARPOptions{Roles: RolesFill, Overdue: true}) }},
	{"ar-paper", func() Scheduler { return NewARP(ARPOptions{Roles: RolesUtility, FewInFlight: true}) }},
	{"arp", func() Scheduler { return NewARP(DefaultARP()) }},
	{"arp-paper", func() Scheduler { return NewARP(PaperARP()) }},
	{"blest", NewBLEST},
	{"ecf", NewECF},
	{"minrtt", NewMinRTT},
	{"minrtt-opportunistic", func() Scheduler {
		return NewMinRTTWith(MinRTTOptions{Opportunistic: true, Penalise: true})
	}},
	{"p", func() Scheduler { return NewARP(ARPOptions{Position: PositionOvertake, OfferLost: true}) }},
	{"p-paper", func() Scheduler { return NewARP(ARPOptions{Position: PositionAssigned}) }},
	{"redundant", NewRedundant},
	{"roundrobin", NewRoundRobin},
}

// Names returns the names of all schedulers, sorted.
func Names() []string {
	names := make([]string, len(schedulers))
	for i, row := range schedulers {
		names[i] = row.name
	}
	return names
}

// ByName returns the constructor of the named scheduler. The error of an unknown name lists the known ones.
func ByName(name string) (func() Scheduler, error) {
	for _, row := range schedulers {
		if row.name == name {
			return row.make, nil
		}
	}
	return nil, fmt.Errorf("schedule: unknown scheduler %q; known are %s", name, strings.Join(Names(), ", "))
}
