#include "CKeychainShims.h"
