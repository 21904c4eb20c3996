package waveorchestrator

// Stats are the counters of an orchestrator, read as one cut: an execution and its
// workers are counted when it has ended, abandoned ones when they are abandoned.
//
//	Executions    = Running + Completed + EarlyExits + TimedOut + Cancelled
//	WorkersRun    = WorkersCompleted + WorkersFailed + WorkersCancelled
//	workers given = WorkersRun + WorkersSkipped, for each execution that has ended
type Stats struct {
	Executions uint64 `json:"executions"` // that have begun
	Running    int    `json:"running"`    // of these
	Completed  uint64 `json:"completed"`
	EarlyExits uint64 `json:"earlyExits"`
	TimedOut   uint64 `json:"timedOut"`
	Cancelled  uint64 `json:"cancelled"`
	Rejected   uint64 `json:"rejected"` // calls of Execute that did not begin: closed, or the context had ended

	WorkersRun       uint64 `json:"workersRun"`
	WorkersCompleted uint64 `json:"workersCompleted"`
	WorkersFailed    uint64 `json:"workersFailed"`
	WorkersCancelled uint64 `json:"workersCancelled"`
	WorkersSkipped   uint64 `json:"workersSkipped"`

	WorkersAbandoned uint64 `json:"workersAbandoned"` // that had failed or were cancelled and did not return in time, ever
	StillAbandoned   int    `json:"stillAbandoned"`   // of these, that still run
	Late             uint64 `json:"late"`             // values that were dropped because the worker's context had ended
}

// count adds an execution that has ended.
func (s *Stats) count(o Outcome) {
	s.Running--
	switch o {
	case OutcomeCompleted:
		s.Completed++
	case OutcomeEarlyExit:
		s.EarlyExits++
	case OutcomeTimedOut:
		s.TimedOut++
	case OutcomeCancelled:
		s.Cancelled++
	}
}
