package waves

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A Stage is a piece of work and the signals that start it. OnStart, OnComplete and
// OnFailure are names of signals that its runs raise: one, or several with commas between
// them. These signals have the key of the trigger and an [Event] as payload, and the
// trigger is their cause.
type Stage struct {
	// Name tells stages apart; "" means "stage-N", the first being 1.
	Name string
	// Trigger is the pattern of the signals that start the stage, see [signals.Match].
	//
	//ephemeral:pattern
	Trigger string
	// Work is called for each of these signals. Its context ends with the early exit and
	// with Close.
	Work core.Work[signals.Signal]
	// OnStart is raised before the work.
	//
	//ephemeral:raises
	OnStart string
	// OnComplete is raised after the work, if the work returned nil.
	//
	//ephemeral:raises
	OnComplete string
	// OnFailure is raised after the work, before [Failed], if the work failed.
	//
	//ephemeral:raises
	OnFailure string
}

// An Event is the payload of the signals that an executor raises about its runs:
//
//	e, ok := signal.Payload().(waves.Event)
type Event struct {
	Stage string
	Err   error // why the work failed or was cancelled; nil in OnStart and OnComplete

	by *stage // keeps a stage from starting itself
}

// stage is a Stage, checked and prepared.
type stage struct {
	Stage
	onStart, onComplete, onFailure []signals.Kind[Event]
}

// prepare checks stages and fills in their names.
func prepare(list []Stage) ([]*stage, error) {
	if len(list) == 0 {
		return nil, errors.New("waves: an executor needs at least one stage")
	}
	var stages []*stage
	taken := make(map[string]bool)
	for i, given := range list {
		s := &stage{Stage: given}
		s.Name = cmp.Or(s.Name, fmt.Sprintf("stage-%d", i+1))
		if taken[s.Name] {
			return nil, fmt.Errorf("waves: there are two stages %q", s.Name)
		}
		taken[s.Name] = true
		if err := s.prepare(); err != nil {
			return nil, err
		}
		stages = append(stages, s)
	}
	return stages, nil
}

func (s *stage) prepare() error {
	switch {
	case s.Work == nil:
		return fmt.Errorf("waves: stage %q: Work is nil, but there must be work to do", s.Name)
	case strings.Trim(s.Trigger, ", ") == "":
		return fmt.Errorf("waves: stage %q: Trigger is %q, which no signal matches", s.Name, s.Trigger)
	}
	var errs [3]error
	s.onStart, errs[0] = s.kinds("OnStart", s.OnStart)
	s.onComplete, errs[1] = s.kinds("OnComplete", s.OnComplete)
	s.onFailure, errs[2] = s.kinds("OnFailure", s.OnFailure)
	return errors.Join(errs[:]...)
}

// kinds splits a list of names.
func (s *stage) kinds(field, list string) ([]signals.Kind[Event], error) {
	var kinds []signals.Kind[Event]
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if strings.ContainsAny(name, "*?") {
			return nil, fmt.Errorf("waves: stage %q: %s is %q, but must be names, not patterns", s.Name, field, list)
		}
		kinds = append(kinds, signals.NewKind[Event](name))
	}
	return kinds, nil
}
