package filepipeline

import "github.com/ephemeralgo/ephemeral/core"

// Signals raised by the pipeline; the key of each is the path it is about. The kinds carry a payload; the plain names
// need none, because whoever reacts reads the state of the operation that raised them.
const (
	SignalFileSaved           = "file.saved"           // the operation's state holds a [File]
	SignalMetadataWritten     = "metadata.written"     // the file's row is in the database
	SignalPipelineInterrupted = "pipeline.interrupted" // intake ended early
)

var (
	FileSkipped       = core.NewKind[Reason]("file.skipped")          // no image, or nothing to be opened
	FileFailed        = core.NewKind[Failure]("file.failed")          // unreadable, corrupt or over a limit
	DirectoryFailed   = core.NewKind[Failure]("directory.failed")     // could not be listed
	ThumbnailComplete = core.NewKind[Thumbnail]("thumbnail.complete") // made, or shared with an equal file
	ThumbnailFailed   = core.NewKind[Failure]("thumbnail.failed")     // does not decode, or changed meanwhile
	DuplicateFound    = core.NewKind[Duplicate]("duplicate.found")    // raised once per file beyond the first of its contents
	OutputFailed      = core.NewKind[Failure]("output.failed")        // the output directory refused a write
)

// File is what a source operation keeps as its state for the reactions, and what fills the first columns of a row.
// Fields that could not be found out are zero.
type File struct {
	Path          string
	Bytes         int64
	SHA256        string // lower-case hexadecimal
	MIME          string
	Format        string // png, jpeg or gif
	Width, Height int    // as declared by the file
}

// Pixels is the declared area.
func (f File) Pixels() int64 { return int64(f.Width) * int64(f.Height) }

// Failure is why one path failed, and all that is known of the file.
type Failure struct {
	File  File
	Cause string // one line, without the path
}

// Thumbnail is a finished thumbnail.
type Thumbnail struct {
	Path   string // of the source
	Name   string // of the thumbnail, relative to the output directory
	Shared bool   // an equal file had it made
}

// Duplicate says that two files have equal contents.
type Duplicate struct {
	Path string
	Of   string
}

// Reason says why an entry is skipped.
type Reason string

const (
	ReasonLink        Reason = "symbolic link"
	ReasonSpecial     Reason = "device, pipe or socket"
	ReasonEmpty       Reason = "empty"
	ReasonUnsupported Reason = "image of another format"
	ReasonNoImage     Reason = "no image"
)
