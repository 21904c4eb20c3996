package menu

import (
	"context"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
)

// Play runs a scenario as an operation, and returns when it has ended. When ctx ends, the
// operation is cancelled. A panic is a [core.PanicError].
func Play(ctx context.Context, s scenario.Scenario, screen *scenario.Screen) error {
	player, err := core.NewCoordinator(s.Run, core.Options{Name: s.Name})
	if err != nil {
		return err
	}
	defer player.Close() // waits for a scenario that was cancelled
	return player.Do(ctx, screen)
}
