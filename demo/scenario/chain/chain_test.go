package chain

import (
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/demo/scenario/scenariotest"
)

// It shows that signals have their causes, and that a circle ends.
func TestScenario(t *testing.T) {
	scenariotest.Shows(t, Scenario,
		"  0.10s  input-1  input > stepA.complete > stepB.complete > stepC.complete",
		"  0.10s  input-1  input is refused: it is one of its own causes",
		"  0.44s  input-3  chain complete, so far  stepA 3  stepB 3  stepC 3",
		"=> 3 inputs, 3 complete chains; 3 circles ended at the first repetition\n",
	)
}

func TestStopsWithItsContext(t *testing.T) {
	scenariotest.Stops(t, Scenario, 60*time.Millisecond)
}
