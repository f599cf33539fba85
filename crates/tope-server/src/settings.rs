//! What a policy file says about the program itself.
