package viewer

import (
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/demo/scenario/scenariotest"
)

// It shows that the tail is filtered, and no signal is lost.
func TestScenario(t *testing.T) {
	scenariotest.Shows(t, Scenario,
		"  1.48s          ALARM, errors within a second: 3",
		"  2.48s          alarm ends, errors within a second: 1",
		"  1.62s  000017  error.database",
		"  3.03s    debug.cache.hit        4",
		"by family:  error 4  warn 5  info 7  debug 9  trace 4",
		"=> 29 signals received, 16 shown, 13 filtered out, none lost\n",
	)
}

func TestStopsWithItsContext(t *testing.T) {
	scenariotest.Stops(t, Scenario, 1500*time.Millisecond)
}
