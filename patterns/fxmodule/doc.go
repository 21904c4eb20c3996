// Package fxmodule puts jobs and coordinators into a program built with go.uber.org/fx.
//
//	fx.New(
//		fxmodule.Module(core.Options{MaxConcurrency: 16}),     // a *signals.Sink and a *jobs.Runner
//		fxmodule.Jobs(newPipelineJobs, newAuditJobs),          // constructors of []jobs.Job
//		fxmodule.Coordinator[*Uploads]("uploads", newUploads), // what newUploads returns, by the name "uploads"
//		fx.Provide(newStore),
//	).Run()
//
// No part of the program has to ask for the runner. It accepts signals as soon as the
// program is built. It starts runs during the start of the program, after the start hooks of
// the parts that its jobs need.
//
// When the program stops, the runner, coordinators and queues are drained and then closed, in
// the reverse order of construction. A part is drained until 5 seconds before the deadline of
// the program, or for half of the time that is left if that is less: the rest is for the stop
// hooks of other parts. The error names the operations that were stuck. If a job needs a
// coordinator, the coordinator is made before the runner, so it ends after the runner. Other
// coordinators are usually made later, so they end first.
//
// The parameters of a constructor of jobs are the parts that its handlers need. [Scoped] makes
// handlers that get a fresh scope for each attempt, for example a transaction.
package fxmodule
