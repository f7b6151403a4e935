package engine

import "time"

// ArchivePlace is where an archive is kept.
type ArchivePlace string

// The places.
const (
	ArchiveLocal  ArchivePlace = "local"  // a directory of this host
	ArchiveRemote ArchivePlace = "remote" // object storage
)

// Archive is what is known of a sandbox's archive: its workspace as one file
// beside it, locally, in object storage, or both.
type Archive struct {
	Sandbox SandboxID `json:"sandbox"`
	// Name is the sandbox's at the time: a remote archive outlives its record.
	Name  string    `json:"name,omitempty"`
	Saved time.Time `json:"saved"` // when the workspace was read
	Size  int64     `json:"size"`  // of the archive
	Files int64     `json:"files"`
	Bytes int64     `json:"bytes"` // of the files in it
	// SHA256 is the archive's checksum, in hex.
	SHA256 string `json:"sha256"`
	Local  bool   `json:"local"`
	Remote bool   `json:"remote"`
	// Pending: the remote one is yet to be uploaded, or of an older state.
	// Failure says why the last try failed, and Retry when the next one is.
	Pending bool      `json:"pending,omitempty"`
	Failure string    `json:"failure,omitempty"`
	Retry   time.Time `json:"retry,omitzero"`
}

// ArchiveLevels are the archives in numbers.
type ArchiveLevels struct {
	Local   int   `json:"local"`
	Remote  int   `json:"remote"`
	Bytes   int64 `json:"bytes"`   // of the local ones
	Pending int   `json:"pending"` // uploads that are yet to be done
	Failing int   `json:"failing"` // of those, how many failed at their last try
}
