package pipeline

import (
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/demo/scenario/scenariotest"
)

// It shows that requests that pass the limiter pass all atoms.
func TestScenario(t *testing.T) {
	scenariotest.Shows(t, Scenario,
		"request-02  complete after 75ms",
		"  0.21s  request-04  LIMITED",
		"  0.28s  request-05  allowed",
		"limiter    5 allowed, 5 limited",
		"validator  5 done",
		"processor  5 done",
		"storage    5 done",
		"=> 5 of 10 requests were limited, all others passed 3 atoms\n",
	)
}

func TestStopsWithItsContext(t *testing.T) {
	scenariotest.Stops(t, Scenario, 100*time.Millisecond)
}
