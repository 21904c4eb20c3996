package reputation

import (
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/demo/scenario/scenariotest"
)

// It shows that scores decay without further updates.
func TestScenario(t *testing.T) {
	scenariotest.Shows(t, Scenario,
		"  0.50s  +8.2 trusted     +4.1 good        -4.1 suspicious  -8.2 blocked",
		"  2.00s  +2.9 good        +1.4 neutral     -1.4 neutral     -2.9 suspicious",
		"  3.00s  +1.4 neutral     +0.7 neutral     -0.7 neutral     -1.4 neutral",
		"=> 192.0.2.99 was blocked and is neutral: 20 updates, and then only time\n",
	)
}

func TestStopsWithItsContext(t *testing.T) {
	scenariotest.Stops(t, Scenario, 700*time.Millisecond)
}
