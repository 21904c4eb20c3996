package waveorchestrator

import (
	"log/slog"

	"github.com/ephemeralgo/ephemeral/core"
)

// Stats are the counters of an orchestrator, all read at the same moment. An execution and
// its workers are counted when it has ended, and abandoned runs when they are abandoned:
//
//	Executions = Running + Completed + EarlyExits + TimedOut + Failed + Cancelled
//	WorkersRun = WorkersCompleted + WorkersFailed + WorkersCancelled
//
// and for the executions that have ended WorkersRun + WorkersSkipped is the number of
// workers times the number of executions.
type Stats struct {
	Executions uint64 `json:"executions"` // that have begun
	Running    int    `json:"running"`    // of these
	Completed  uint64 `json:"completed"`
	EarlyExits uint64 `json:"earlyExits"`
	TimedOut   uint64 `json:"timedOut"`
	Failed     uint64 `json:"failed"` // no worker has completed
	Cancelled  uint64 `json:"cancelled"`
	Rejected   uint64 `json:"rejected"` // calls of Execute that did not begin: closed, or the context had ended

	WorkersRun       uint64 `json:"workersRun"`
	WorkersCompleted uint64 `json:"workersCompleted"`
	WorkersFailed    uint64 `json:"workersFailed"`
	WorkersCancelled uint64 `json:"workersCancelled"`
	WorkersSkipped   uint64 `json:"workersSkipped"`

	WorkersAbandoned uint64 `json:"workersAbandoned"` // failed or cancelled runs that did not return in time
	StillAbandoned   int    `json:"stillAbandoned"`   // of these, those that still run
	Late             uint64 `json:"late"`             // values that were dropped because the worker's context had ended
}

// LogValue groups the counters by their JSON names.
func (s Stats) LogValue() slog.Value { return core.StatsValue(s) }

// String is the JSON form.
func (s Stats) String() string { return core.StatsString(s) }

// count adds an execution that has ended.
func count[Out any](s *Stats, r *Result[Out]) {
	s.Running--
	switch r.Outcome {
	case OutcomeCompleted:
		s.Completed++
	case OutcomeEarlyExit:
		s.EarlyExits++
	case OutcomeTimedOut:
		s.TimedOut++
	case OutcomeFailed:
		s.Failed++
	case OutcomeCancelled:
		s.Cancelled++
	}
	s.WorkersCompleted += uint64(len(r.Completed))
	s.WorkersFailed += uint64(len(r.Failed))
	s.WorkersCancelled += uint64(len(r.Cancelled))
	s.WorkersSkipped += uint64(len(r.Skipped))
	s.WorkersRun = s.WorkersCompleted + s.WorkersFailed + s.WorkersCancelled
}
