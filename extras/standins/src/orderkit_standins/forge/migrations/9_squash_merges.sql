ALTER TABLE repositories ADD COLUMN allow_squash_merge INTEGER NOT NULL DEFAULT 1;
