package waveorchestrator

import (
	"log/slog"

	"github.com/ephemeralgo/ephemeral/core"
)

// Counters count executions by outcome, and runs of workers. All are read at the same moment. The
// outcome of an execution and of its workers is counted when the execution has ended. Abandoned
// runs are counted when they are abandoned.
//
//	Executions = Running + Completed + EarlyExits + TimedOut + Failed + Cancelled
//	WorkersRun = WorkersCompleted + WorkersFailed + WorkersCancelled
//
// WorkersRun + WorkersSkipped is the number of workers times the number of executions that have
// ended.
type Counters struct {
	Executions uint64 `json:"executions"` // executions that have begun
	Running    int    `json:"running"`    // executions that have not ended
	Completed  uint64 `json:"completed"`
	EarlyExits uint64 `json:"earlyExits"`
	TimedOut   uint64 `json:"timedOut"`
	Failed     uint64 `json:"failed"` // no worker has completed
	Cancelled  uint64 `json:"cancelled"`
	Rejected   uint64 `json:"rejected"` // calls of Execute that did not begin

	WorkersRun       uint64 `json:"workersRun"`
	WorkersCompleted uint64 `json:"workersCompleted"`
	WorkersFailed    uint64 `json:"workersFailed"`
	WorkersCancelled uint64 `json:"workersCancelled"`
	WorkersSkipped   uint64 `json:"workersSkipped"`

	WorkersAbandoned uint64 `json:"workersAbandoned"` // failed or cancelled runs that did not return in time
	StillAbandoned   int    `json:"stillAbandoned"`   // abandoned runs that have not returned
	Late             uint64 `json:"late"`             // values that were dropped because the worker's context had ended
}

// LogValue groups the counters by their JSON names.
func (c Counters) LogValue() slog.Value { return core.StatsValue(c) }

// String is the JSON form.
func (c Counters) String() string { return core.StatsString(c) }

// count adds an execution that has ended.
func count[Out any](s *Counters, r *Result[Out]) {
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
