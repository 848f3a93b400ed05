package schemas

import "time"

// The tables of a part: the requests of some hours of a day in the form from which the profile of the whole day is
// computed once all its hours are there.

// ProfilePart says which hours of which day a part holds (one row).
type ProfilePart struct {
	Day          string `parquet:"day"`                      // UTC
	FromHour     int32  `parquet:"from_hour"`                // first hour of the day
	ToHour       int32  `parquet:"to_hour"`                  // exclusive
	View         string `parquet:"view"`                     // engine | client
	Seed         int64  `parquet:"seed"`                     // the bits of the seed
	BlockSize    int32  `parquet:"block_size" unit:"tokens"` // tokens of a block; 0 = no ids
	InputsSHA256 string `parquet:"inputs_sha256"`            // of the day's file
	InputsBytes  int64  `parquet:"inputs_bytes"`             // size of the day's file
	Tokenizer    string `parquet:"tokenizer"`                // tokenizer of the ids; "" = not known
	Epoch        string `parquet:"epoch"`                    // epoch of the block keys; "" = none
	Model        string `parquet:"model"`                    // * = several
	Requests     int64  `parquet:"requests"`                 // rows of profile_part_row
	Probes       int64  `parquet:"probes"`                   // left out, as the next four
	OtherOps     int64  `parquet:"other_ops"`                // requests of other operations
	Unreached    int64  `parquet:"unreached"`                // requests that reached no engine
	Retries      int64  `parquet:"retries"`                  // attempts that are not the first
	Sampled      int64  `parquet:"sampled"`                  // from logs that hold a sample
	Damaged      int64  `parquet:"damaged"`                  // prompts that were cut or redacted
	// Halvings says which blocks are followed: a share of 2^-halvings of the different ones.
	Halvings int32 `parquet:"halvings"`
}

// ProfilePartRow is one request of a part, in the order of the lake.
type ProfilePartRow struct {
	ArrivedAt        time.Time `parquet:"arrived_at,timestamp(microsecond)"` // when the request arrived
	TimeResolutionUs int64     `parquet:"time_resolution_us"`                // step of its clock
	Tenant           string    `parquet:"tenant,dict"`                       // "" = none
	Class            string    `parquet:"class,dict"`                        // workload class; "" = none
	Session          *int64    `parquet:"session,optional"`                  // hash of the session's token
	Turn             *int32    `parquet:"turn,optional"`                     // place in the session, from 0; null = no session
	InputTokens      *int32    `parquet:"input_tokens,optional"`             // length of the prompt; null = not known
	OutputTokens     *int32    `parquet:"output_tokens,optional"`            // length of the answer; null = failed or not known
	Failed           bool      `parquet:"failed"`                            // the request failed
	PromptKnown      bool      `parquet:"prompt_known"`                      // its blocks are known
	Damaged          bool      `parquet:"damaged"`                           // the prompt was cut or redacted in the log
	Block            int64     `parquet:"block"`                             // row of profile_part_block of its last followed block, from 1; 0 = none
	PrivateBlocks    int32     `parquet:"private_blocks"`                    // blocks behind it that no other request has
	// The next three are null where all blocks are followed.
	SharedBlocks *int32 `parquet:"shared_blocks,optional"` // blocks before them
	FirstBlock   *int64 `parquet:"first_block,optional"`   // id of the first one of these
	WholeBlock   *int64 `parquet:"whole_block,optional"`   // as block, of a prompt that is kept whole
}

// ProfilePartBlock is one prefix of blocks, ended by a block; the one that it goes on from stands before it.
type ProfilePartBlock struct {
	BlockID int64  `parquet:"block_id"`       // id of the block
	Parent  int64  `parquet:"parent"`         // row of this table, from 1; 0 = none
	Place   *int32 `parquet:"place,optional"` // of a sampled block, in the prompts, from 0; null where all blocks before it are in the table
}
