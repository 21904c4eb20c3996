package command

import (
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/demo/scenario/scenariotest"
)

// It shows that the window obeys commands, and refuses one that makes no sense.
func TestScenario(t *testing.T) {
	scenariotest.Shows(t, Scenario,
		"window holds 100 for 5m0s",
		"applied:  capacity 500, before 100",
		"window holds 500 for 5m0s",
		"applied:  capacity 700, before 500",
		"rejected: window.size.set:many",
		"window holds 700 for 30s",
		"=> it held 500, then 700 signals, for 30s: 3 commands obeyed, 1 refused\n",
	)
}

func TestStopsWithItsContext(t *testing.T) {
	scenariotest.Stops(t, Scenario, 50*time.Millisecond)
}
