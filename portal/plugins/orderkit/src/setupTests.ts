import '@testing-library/jest-dom';
import { configure } from '@testing-library/dom';

// A machine that does other things too is slow, and no test asserts a time.
jest.setTimeout(120_000);
configure({ asyncUtilTimeout: 30_000 });
