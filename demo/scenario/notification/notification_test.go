package notification

import (
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/demo/scenario/scenariotest"
)

// It shows that listeners read the state from the atom, after a signal that has none.
func TestScenario(t *testing.T) {
	scenariotest.Shows(t, Scenario,
		"  0.07s  notify: 1 saved so far",
		"  0.07s  audit:  report.txt was saved at ",
		"  0.27s  audit:  budget.csv was saved at ",
		"=> the signals said that, the atom knew what: 3 saved, 3 audited\n",
	)
}

func TestStopsWithItsContext(t *testing.T) {
	scenariotest.Stops(t, Scenario, 120*time.Millisecond)
}
