-- Lives as long as one join: no durability is needed, and a crash may take it.
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
BEGIN;

CREATE TABLE answers (
    seq INTEGER PRIMARY KEY,
    file INTEGER NOT NULL,
    row INTEGER NOT NULL,
    id TEXT,
    mark BLOB,
    turn INTEGER NOT NULL,
    turns INTEGER NOT NULL,
    prompt TEXT,
    response TEXT NOT NULL,
    context TEXT,
    reference TEXT,
    tags TEXT,
    cluster TEXT
);

CREATE TABLE questions (
    id TEXT PRIMARY KEY,
    prompts TEXT NOT NULL,
    refs TEXT NOT NULL,
    tags TEXT
) WITHOUT ROWID;
