package filepipeline

import (
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Signals raised by the pipeline; the key of each is the path it is about. The kinds carry a payload; the plain names
// need none, because whoever reacts reads the state of the operation that raised them.
const (
	SignalFileSaved           = "file.saved"           // the operation's state holds a [File]
	SignalMetadataWritten     = "metadata.written"     // the file's row is in the table
	SignalPipelineInterrupted = "pipeline.interrupted" // intake ended early
)

var (
	FileSkipped       = signals.NewKind[Reason]("file.skipped")          // the entry is no image, or must not be opened
	FileFailed        = signals.NewKind[Failure]("file.failed")          // the file is unreadable, corrupt or over a limit
	DirectoryFailed   = signals.NewKind[Failure]("directory.failed")     // the directory could not be listed
	ThumbnailComplete = signals.NewKind[Thumbnail]("thumbnail.complete") // the thumbnail was made, or shared with an equal file
	ThumbnailFailed   = signals.NewKind[Failure]("thumbnail.failed")     // the image does not decode, or has changed meanwhile
	DuplicateFound    = signals.NewKind[Duplicate]("duplicate.found")    // raised once per file beyond the first of its contents
	OutputFailed      = signals.NewKind[Failure]("output.failed")        // the output directory refused a write
)

// File is the state that a source operation keeps for the reactions. It also fills the first columns of a row.
// Unknown fields are zero.
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

// Failure says why one path failed, and has all known facts about the file.
type Failure struct {
	File  File
	Cause string // one line, without the path
}

// Thumbnail is a finished thumbnail.
type Thumbnail struct {
	Path   string // of the source
	Name   string // name of the thumbnail, relative to the output directory
	Shared bool   // the thumbnail was made for an equal file
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
